// Package fault has what goes wrong in krylov: which fault strikes which rank when, and
// what it does there.
//
// It must never know what is done about it.
package fault
