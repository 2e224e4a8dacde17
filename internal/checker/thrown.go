package main

import "github.com/mpicx/go-mpicx/future"

// asThrown returns the error that a panic's value carries, if it was thrown.
func asThrown(v any) (error, bool) {
	t, ok := v.(future.Thrown)
	return t.Err, ok
}
