package view

// TimeShare lets tests compare the curve of the estimate with its table.
var TimeShare = timeShare
