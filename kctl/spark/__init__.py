"""The scan where the data is, on Spark: local disks, HDFS and object stores. The only home of pyspark."""
