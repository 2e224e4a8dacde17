// Package lesson is shared by the programs in examples/ulfm: it kills ranks at certain points, and
// prints what ranks say. It must never know what a lesson teaches.
package lesson
