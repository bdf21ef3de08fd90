package signature_test

import "github.com/clusterupdate/clusterupdate/internal/limittest"

// storeLimits proves the limits on stores, caches and what is kept.
func storeLimits() []limittest.Case { return nil }
