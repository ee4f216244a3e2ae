import java.io.File;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** HDFS with one data node and YARN with one node manager, until standard input ends: `java -cp 'lib/*' MiniHadoop.java FOLDER PORT`; what an earlier one left in the folder is there again. */
public class MiniHadoop {
    public static void main(String[] args) throws Exception {
        String out = args[0];
        YarnConfiguration here = new YarnConfiguration();
        here.set("hdfs.minidfs.basedir", out + "/dfs");
        here.set("hadoop.tmp.dir", out + "/tmp");
        here.set("dfs.namenode.http-address", "127.0.0.1:0");
        here.set("dfs.replication", "1");
        MiniDFSCluster dfs = new MiniDFSCluster.Builder(here).numDataNodes(1)
            .nameNodePort(Integer.parseInt(args[1])).format(!new File(out, "dfs").exists()).build();
        dfs.waitActive();
        YarnConfiguration conf = new YarnConfiguration(dfs.getConfiguration(0));
        conf.set("fs.defaultFS", dfs.getURI().toString());
        conf.setInt("yarn.scheduler.minimum-allocation-mb", 256);
        conf.setInt("yarn.nodemanager.resource.memory-mb", 4096);
        conf.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
        conf.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
        conf.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "99.9");
        conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1.0");
        conf.set("yarn.scheduler.capacity.root.default.maximum-am-resource-percent", "1.0");
        MiniYARNCluster yarn = new MiniYARNCluster("mini", 1, 1, 1, 1);
        yarn.init(conf);
        yarn.start();
        new File(out, "conf").mkdir();
        Configuration core = new Configuration(false);
        core.set("fs.defaultFS", dfs.getURI().toString());
        write(core, Path.of(out, "conf", "core-site.xml"));
        Configuration nodes = new Configuration(false);
        for (Map.Entry<String, String> entry : yarn.getConfig()) {
            if (entry.getKey().startsWith("yarn.resourcemanager.")) {
                nodes.set(entry.getKey(), yarn.getConfig().get(entry.getKey()));
            }
        }
        write(nodes, Path.of(out, "conf", "yarn-site.xml"));
        Files.writeString(Path.of(out, "web"), dfs.getConfiguration(0).get("dfs.namenode.http-address"));
        Files.writeString(Path.of(out, "url.writing"), dfs.getURI().toString());
        Files.move(Path.of(out, "url.writing"), Path.of(out, "url"));
        while (System.in.read() >= 0) {
        }
        System.exit(0);
    }

    private static void write(Configuration conf, Path path) throws Exception {
        try (FileOutputStream out = new FileOutputStream(path.toFile())) {
            conf.writeXml(out);
        }
    }
}
