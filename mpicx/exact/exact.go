package exact

// Dot returns x·y, correctly rounded. It panics unless both have the same length.
func Dot(x, y []float64) float64 {
	var s Sum
	s.AddProducts(x, y)
	return s.Float64()
}

// Norm returns the Euclidean norm of x, with an error of less than one unit in the last place.
// Squares do not overflow or underflow.
func Norm(x []float64) float64 {
	var s Sum
	s.AddProducts(x, x)
	return s.Sqrt()
}
