"""The providers' formats, parsed record by record so that only broken records are lost. Pure."""
