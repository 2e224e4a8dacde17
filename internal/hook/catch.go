package hook

import "github.com/mpicx/go-mpicx/future"

// Catch turns what was thrown into the error of the function that defers it. Other panics pass
// through. [future.Catch] makes errors of them, too: it is for goroutines, which a panic would end
// with the process.
func Catch(err *error) {
	switch v := recover().(type) {
	case nil:
	case future.Thrown:
		*err = v.Err
	default:
		panic(v)
	}
}
