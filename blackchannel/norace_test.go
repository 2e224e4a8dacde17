//go:build !race

package blackchannel

const Raced = false
