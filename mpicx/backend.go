package mpicx

// Both error backends are always there, so that tests hold them against each
// other; a job uses one.
const (
	backendBlackChannel = "blackchannel"
	backendULFM         = "ulfm"
)
