"""The lab rack: a broker that owns the phones, shares them fairly and loses nothing when one of them dies."""
