// Package sshhost runs commands on the hosts of nodes by SSH.
//
// [Hosts] is a [hosts.Runner]. Each command has a connection of its own. A
// host's key is always verified: there is no default that trusts any. Words of a
// command reach it as they are, quoted for the shell that SSH puts in between, and
// with the locale C, since outputs are read. A user other than root runs commands
// by sudo.
//
// A host whose key is not accepted, or that refuses the login, is a permanent
// error: trying again would lock an account or hand a password to somebody else.
// A connection that cannot be made, or is lost, is an error that may pass; whether
// the command ran is not known then. Neither keys nor passwords are in errors.
//
// Values without methods of their own are plain data: safe for concurrent reads.
//
// docs/limits.md lists the limits of this package.
package sshhost
