"""One template per reason code, and the renderer. Add a reason or a remedy here."""
