// Package docs holds the documents of this module and the figures in them. Its tests check
// that what the documents name exists. It must never have code of its own.
package docs
