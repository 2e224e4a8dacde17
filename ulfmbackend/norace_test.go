//go:build !race

package ulfmbackend

const raced = false
