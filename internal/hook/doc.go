// Package hook gives this module's own tests, benchmarks and fault injection what package
// mpicx does not export. Package mpicx sets its functions. It must never know the types
// of that package: it would import its importer.
package hook
