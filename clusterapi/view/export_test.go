package view

// TimeShare lets tests compare the curve of the estimate with its table.
var TimeShare = timeShare

// RunPrechecks and AlertPrecheck let tests look at the findings alone.
var (
	RunPrechecks  = runPrechecks
	AlertPrecheck = alertPrecheck
)
