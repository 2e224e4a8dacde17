// Package plots is shared by all programs of this module that draw figures: labels of axes, looks
// of curves, saving of pictures. It must never know what a figure shows.
package plots
