package remote

// The tests of this package use package delivertest, which imports it.

const SilenceLimit = silenceLimit

var ErrLost = errLost
