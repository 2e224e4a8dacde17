// Package hook gives this module's packages, tests and benchmarks what package mpicx does not
// export: settings of a job, and the inside of a rank. It must never know the types of that
// package: it would import its importer.
package hook
