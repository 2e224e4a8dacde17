package mpicx

// Both error backends are always built, because tests compare them. A job uses one.
const (
	backendBlackChannel = "blackchannel"
	backendULFM         = "ulfm"
)
