// Package plots has what the figures of this module share: labels of axes, looks of curves, and
// how pictures are saved. It must never know what a figure shows.
package plots
