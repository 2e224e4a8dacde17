// Package lesson is what the programs of examples/ulfm share: when a rank dies,
// and how what the ranks say is printed. It must never know what is taught.
package lesson
