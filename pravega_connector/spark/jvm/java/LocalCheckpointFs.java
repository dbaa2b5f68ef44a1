package pravegaserde.spark;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system for checkpoints, without a process per file.
 *
 * <p>For each new file, Hadoop starts {@code chmod} and several times {@code readlink}. That takes most of the time of a
 * small micro-batch. All else is Hadoop's, also the rename that finds a second driver of the same checkpoint.
 */
public final class LocalCheckpointFs extends ChecksumFs {
  /** Create a file system as Hadoop does for the class that {@code fs.AbstractFileSystem.file.impl} names. */
  public LocalCheckpointFs(URI uri, Configuration settings) throws IOException, URISyntaxException {
    super(new RawFs(uri, settings));
  }

  /** Counterpart of Hadoop's {@code RawLocalFs}, which has no public constructor. */
  private static final class RawFs extends DelegateToFileSystem {
    RawFs(URI uri, Configuration settings) throws IOException, URISyntaxException {
      super(uri, new LocalFiles(), settings, "file", false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }

    @Override
    public FsServerDefaults getServerDefaults(Path path) throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    @Deprecated
    public FsServerDefaults getServerDefaults() throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    public boolean isValidName(String name) {
      return true;
    }
  }

  private static final class LocalFiles extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      if (permission.getStickyBit()) {
        super.setPermission(path, permission);
        return;
      }
      String letters = permission.getUserAction().SYMBOL
          + permission.getGroupAction().SYMBOL
          + permission.getOtherAction().SYMBOL;
      Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(letters));
    }

    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      boolean isLink = Files.isSymbolicLink(pathToFile(path).toPath());
      return isLink ? super.getFileLinkStatus(path) : getFileStatus(path);
    }
  }
}
