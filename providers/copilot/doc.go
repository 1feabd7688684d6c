package copilot

// version is the newest version that this package was tried with.
const version = "1.0.102"
