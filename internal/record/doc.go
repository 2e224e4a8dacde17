// Package record keeps the latest collective calls of a rank, to find out afterwards where a rank
// is that does not answer. It must never know what the calls do.
package record
