//go:build !race

package mpicxtest_test

const raced = false
