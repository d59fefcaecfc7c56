"""What a session starts from: Java, jars, class archive, settings.

Finding these imports no PySpark, so that a check of the machine is quick. No table is known here.
"""
