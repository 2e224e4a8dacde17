//go:build !race

package mpicx_test

const raced = false
