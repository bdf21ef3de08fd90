// Package reconcile drives reconcilers: what makes one kind of thing true, and
// says when to look at it again.
package reconcile
