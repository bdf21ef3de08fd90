// Package backend is what backends over a real API server share, whichever client
// they use: the check that an answer is what was asked for, lists of many pages,
// watches that continue, and the patch that writes a status.
package backend
