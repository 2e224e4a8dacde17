// Package contract holds programs that a user of mpicx could write, and every signature of
// its face. They must compile, and pass, under every combination of build tags. It must never
// know more of this module than a user does.
package contract
