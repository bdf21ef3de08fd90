// Package httpclient is how this module reads from servers that it does not
// trust: the update service, signature stores, metrics endpoints, the cluster
// manager.
//
// Go's http.Client follows a redirect from https to http, sends the address of the
// page before (query included) as Referer to the next host, reads bodies without a
// limit and undoes gzip on the way, so that a small answer fills the memory. A
// [Client] bounds them all:
//
//   - the time of a whole exchange, body and redirects included;
//   - the size of the body, counted after decompression;
//   - the number of redirects, none of which may leave https;
//   - what another host gets to see: no header but those that ask for a
//     representation, no Referer, none of the query parameters that
//     [Options.DropQuery] names.
//
// The environment (HTTP_PROXY and friends) is never consulted: a program that wants a
// proxy passes one, such as [Proxy].
//
// [Client.DoRetry] sends a request again that failed for the moment, after the
// time that the server asks for, if it does.
//
// # Limits
//
// Passing a limit is a [*limit.LimitError], the limit of time a [*TimeoutError]; a
// broken body is a [*BodyError]. A status other than 2xx is not an error: callers
// know what 304 or 404 means to them.
//
// docs/limits.md lists the limits of this package.
package httpclient
