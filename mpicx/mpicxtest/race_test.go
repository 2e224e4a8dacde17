//go:build race

package mpicxtest_test

const raced = true // what takes long is made shorter
