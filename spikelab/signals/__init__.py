"""The signals of the lab by what they are about; `core` says what a signal is."""
