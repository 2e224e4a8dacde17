// Package buildtags has a constant for each build tag that tests ask for. It must
// never know what is tested. The tags that choose implementations are asked of
// package mpicx: mpicx.Backend and mpicx.Transport.
package buildtags
