package remote

import "fanfare.dev/fanfare/internal/cluster/link"

// The tests of this package use package delivertest, which imports it.

const SilenceLimit = link.Silence

var ErrLost = errLost
