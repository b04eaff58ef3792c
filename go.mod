module scanode

go 1.26
