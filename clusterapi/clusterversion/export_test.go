package clusterversion

// PruneHistory lets tests prune to other limits than that of the history.
var PruneHistory = pruneHistory
