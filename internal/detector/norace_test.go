//go:build !race

package detector

const raced = false
