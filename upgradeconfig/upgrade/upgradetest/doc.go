// Package upgradetest has hooks of package upgrade that only take time or keep
// count, for tests, rehearsals and simulated clusters. Their types are safe for
// concurrent use.
package upgradetest
