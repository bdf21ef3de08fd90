// Package fieldchange shows changes of fields to people: without credentials, of
// CustomResourceDefinitions by version, and in lines of text.
package fieldchange
