module interop

go 1.26.8
