// Package page shows update graphs in a browser: a page on which to choose a
// channel, an architecture and a version, with the updates of that version, the
// risks that they are under, and which line of which file says so.
//
// Everything works without a script: versions and updates are links, in the picture
// as in the tables. A script, if there is one, shows what is chosen without loading
// the page anew, and zooms and moves the picture. Nothing is loaded from elsewhere,
// and the Content-Security-Policy allows no more than that.
//
// A Handler is safe for concurrent use. The other types are plain data.
package page
