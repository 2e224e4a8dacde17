// Package lessontest runs the lessons of examples/ulfm in tests. It must never know what a lesson
// teaches.
package lessontest
