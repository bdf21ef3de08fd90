package clusterapi

import "github.com/clusterupdate/clusterupdate/internal/panics"

// PanicError is a panic in code that an embedder supplied: a backend, a
// callback, an observer. Packages return it, wrapped, instead of letting the
// process end; errors.As finds it, and its Stack says where it happened.
type PanicError = panics.Error
