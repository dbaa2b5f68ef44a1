package pravegaserde.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Base of the columns: without nulls, and without a value of any type. A subclass has the values of one type. */
abstract class Column extends ColumnVector {
  Column(DataType type) {
    super(type);
  }

  @Override
  public void close() {}

  @Override
  public boolean hasNull() {
    return false;
  }

  @Override
  public int numNulls() {
    return 0;
  }

  @Override
  public boolean isNullAt(int row) {
    return false;
  }

  private UnsupportedOperationException otherType() {
    return new UnsupportedOperationException("a value of another type than " + type);
  }

  @Override
  public boolean getBoolean(int row) {
    throw otherType();
  }

  @Override
  public byte getByte(int row) {
    throw otherType();
  }

  @Override
  public short getShort(int row) {
    throw otherType();
  }

  @Override
  public int getInt(int row) {
    throw otherType();
  }

  @Override
  public long getLong(int row) {
    throw otherType();
  }

  @Override
  public float getFloat(int row) {
    throw otherType();
  }

  @Override
  public double getDouble(int row) {
    throw otherType();
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw otherType();
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw otherType();
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw otherType();
  }

  @Override
  public UTF8String getUTF8String(int row) {
    throw otherType();
  }

  @Override
  public byte[] getBinary(int row) {
    throw otherType();
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    throw otherType();
  }
}
