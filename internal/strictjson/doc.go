// Package strictjson scans JSON (RFC 8259) for decoders of formats that must not
// be misread: a key that comes twice, or a value of another type than its place
// wants, is an error that says so, and limits hold before memory is taken.
//
// A decoder asks the [Scanner] for what comes next by its type: [Scanner.Object]
// and [Scanner.Array] call a function for each element, which must read it,
// [Scanner.Text], [Scanner.Number] and [Scanner.Integer] return what they read,
// [Scanner.Skip] reads anything. The decoder says where in the format an error
// happened; [Scanner.Describe] says on which line.
//
// docs/limits.md lists the limits of this package.
package strictjson
