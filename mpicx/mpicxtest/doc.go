// Package mpicxtest is for the tests of programs that use mpicx. It runs ranks inside a
// test, finds deadlocks at once, and lets ranks die by a plan. It must never know how
// messages or errors travel.
package mpicxtest
