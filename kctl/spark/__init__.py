"""The scan where the data is: on Spark, from local disks, HDFS and object stores. The only home of pyspark."""
