// Package hook is what package mpicxtest needs of package mpicx and users must
// not have.
package hook

// Die marks the rank of a *mpicx.Comm as dead: its operations reach nobody from
// now on. Package mpicx sets it.
var Die func(comm any)
