package options

import "context"

type onceKey struct{}

// Once returns a context in which clusterapi.Modify tries once and returns a conflict
// to its caller, as if its option Once were set. Reconcilers get such contexts, since
// their host decides when to try again.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

// IsOnce reports whether ctx comes from [Once].
func IsOnce(ctx context.Context) bool { return ctx.Value(onceKey{}) != nil }
