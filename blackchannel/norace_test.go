//go:build !race

package blackchannel_test

const raced = false
